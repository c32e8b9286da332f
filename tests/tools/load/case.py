"""What all cases know: the engines, the server's options, and the exit statuses of the program."""

ENGINES = ("Teak", "InnoDB")
OPTIONS = ["--max-allowed-packet=16M", "--innodb-buffer-pool-size=128M", "--event-scheduler=off"]

# Exit statuses of the program.
OTHER, USAGE, DAMAGE, INPUT_OUTPUT, SERVER, NOTHING_TO_RESUME = range(1, 7)
