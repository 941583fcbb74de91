"""Messages of the contract, to plain values and back."""
