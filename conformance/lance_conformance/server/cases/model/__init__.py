"""Cases that ask anything in any order, and hold each answer against a model of the target.

`facts` is what a right server knows after what it was asked; `questions` has each question with the
answers that are right at that moment; `steps` are those that need more than one answer; `walks`
draws them.
"""
