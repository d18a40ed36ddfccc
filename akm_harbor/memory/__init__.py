"""The memory study: does akm hold up as a memory layer?"""
