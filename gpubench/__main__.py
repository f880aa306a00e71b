"""`python -m gpubench`: the same as the command `gpubench`."""

from gpubench.cli import main

if __name__ == "__main__":
    main()
