"""What a cloud's services get of ours, on the cloud's host: a way to the network, and to volumes."""
