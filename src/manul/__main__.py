"""`python -m manul` is `manul`."""

from manul.cli import main

if __name__ == "__main__":
    main(prog_name="manul")
