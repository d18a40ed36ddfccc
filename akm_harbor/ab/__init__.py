"""The A/B study: does the treatment change what an agent achieves?"""
