"""Text rules that several rooms share: answers, boxed answers, numbers for a person, JUnit."""
