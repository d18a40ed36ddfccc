#!/bin/sh
$CHECK text total.txt --equals /tests/wanted.txt
