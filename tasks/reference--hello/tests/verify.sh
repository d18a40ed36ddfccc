#!/bin/sh
exec $CHECK text greeting.txt --equals /tests/wanted.txt
