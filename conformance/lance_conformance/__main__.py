"""``python -m lance_conformance`` is ``lance-conformance``."""

from lance_conformance.cli import main

if __name__ == "__main__":
    main()
