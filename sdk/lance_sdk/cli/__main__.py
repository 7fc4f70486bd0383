"""``python -m lance_sdk.cli`` is ``lwp``."""

from lance_sdk.cli import main

if __name__ == "__main__":
    main()
