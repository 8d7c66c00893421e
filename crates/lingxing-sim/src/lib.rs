//! A Lingxing OMP service with a seeded world that lives, and with the faults the real one has. It knows nothing of the program that asks it.
