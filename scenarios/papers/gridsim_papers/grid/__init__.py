"""The paper on ordering policies for list schedulers on a grid."""
