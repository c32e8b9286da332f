"""What the suites share. tests/run puts the directory above into the path of Python.

| file | |
|---|---|
| options.py | what a program is told by its command line and by the environment |
| cases.py | runs the cases of a program, says how each ended, counts |
| server.py | a private server, which may be killed |
| asking.py | asks a server: for rows, for the error that something ends with, again and again |
| replicas.py | a primary and a replica that follows it |
| writers.py | what clients of several suites write |
| busy.py | a table, and sessions that write to it in every way |
| cgroup.py | a limit of memory for a server and the kernel's cache of its files |
| stops.py | a server that is killed, or held, at its n-th change of a file (stopper.c) |
"""
