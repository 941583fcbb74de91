"""The gRPC side: the only folder that imports grpc or cbench_client."""
