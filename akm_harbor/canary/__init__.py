"""The canary study: is a living akm store healthy or collapsing?"""
