"""One command, with the options of `docker compose` before the subcommand and its own behind it."""

import akm_verify

BEFORE = [
    akm_verify.parse_option("-f|--file=stack.yaml"),
    akm_verify.parse_option("--env-file=stage.env"),
    akm_verify.parse_option("--profile=tools"),
]


def halves():
    commands = akm_verify.split_commands(akm_verify.read_answer("commands.txt"))
    assert len(commands) == 1
    place = commands[0].index("config")
    return commands[0][:place], commands[0][place:]


def test_options_of_compose():
    assert akm_verify.match_command(halves()[0], ["docker", "compose"], BEFORE, []) == []


def test_options_of_config():
    switch = [akm_verify.parse_option("--no-interpolate")]
    assert akm_verify.match_command(halves()[1], ["config"], switch, []) == []


def test_inputs_are_as_before():
    assert akm_verify.read_answer("stage.env") == "SHOP_TAG=12\n"
    assert "shop:${SHOP_TAG}" in akm_verify.read_answer("stack.yaml")
