"""`python -m parallel_mix`."""

from parallel_mix.cli import main

if __name__ == "__main__":
    main()
