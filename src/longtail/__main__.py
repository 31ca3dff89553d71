"""`python -m longtail`, which torchrun starts: torchrun -m longtail train ..."""

from longtail.cli import main

if __name__ == "__main__":
    main()
