#!/bin/sh
ref=images.brackenfield.example/harbour/tide-charts:20260314-9c41e07
$CHECK command --of 2 --nth 1 commands.txt "docker tag tide-charts:build $ref" || $CHECK command --of 2 --nth 1 commands.txt "docker image tag tide-charts:build $ref" || exit
$CHECK command --of 2 --nth 2 commands.txt "docker push $ref" || $CHECK command --of 2 --nth 2 commands.txt "docker image push $ref"
