"""The command line as `python -m dpselect`, where no script is on the path."""

from dpselect.cli import main

if __name__ == "__main__":
    main()
