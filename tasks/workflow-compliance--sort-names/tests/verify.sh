#!/bin/sh
$CHECK text sorted.txt --equals /tests/wanted.txt
