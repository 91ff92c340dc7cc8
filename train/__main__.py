"""`python -m train`: recipes, layouts and proof. Training itself is `torchrun -m train.sft`."""

from train.cli import main

if __name__ == "__main__":
    main()
