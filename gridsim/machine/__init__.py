"""Free-time blocks: how many cores are free from when to when. The one hot structure, compiled."""
