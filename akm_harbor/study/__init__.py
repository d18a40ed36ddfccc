"""Running a study: arms as job files, price and size beforehand, one command from preflight to verdict."""
