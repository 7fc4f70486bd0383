"""The io_uring backend: the kernel's submission rings, spoken to directly."""
