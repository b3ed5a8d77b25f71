"""A governed call, and a typed error, with what Debian's protoc made of proto/ alone."""
import json
import os
import sys

import grpc
from google.rpc import error_details_pb2, status_pb2
from reeve.common.v1 import error_pb2
from reeve.tools.v1 import file_system_pb2, file_system_pb2_grpc, shell_pb2, shell_pb2_grpc

address, folder = sys.argv[1:]
metadata = (("authorization", "Bearer " + os.environ["REEVE_TOKEN"]), ("reeve-device", "this"))
channel = grpc.insecure_channel(address)
result = {}
ran = shell_pb2_grpc.ShellStub(channel).Exec(shell_pb2.ExecRequest(argv=["echo", "governed"]), metadata=metadata)
result["stdout"] = ran.stdout


def read(path):
    try:
        file_system_pb2_grpc.FileSystemStub(channel).Read(file_system_pb2.ReadRequest(path=path), metadata=metadata)
    except grpc.RpcError as error:
        status = status_pb2.Status()
        status.ParseFromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
        kinds = (error_pb2.ErrorDetail, error_details_pb2.ErrorInfo, error_details_pb2.BadRequest)
        found = {}
        for packed in status.details:
            for kind in kinds:
                if packed.Is(kind.DESCRIPTOR):
                    found[kind.DESCRIPTOR.full_name] = kind()
                    packed.Unpack(found[kind.DESCRIPTOR.full_name])
        return error.code().name, found
    raise SystemExit("the read did not fail")


code, found = read("/proc/1/environ")
info = found["google.rpc.ErrorInfo"]
detail = found["reeve.common.v1.ErrorDetail"]
result["outside"] = [code, info.reason, info.domain, error_pb2.ErrorReason.Name(detail.reason)]
code, found = read("")
violations = found["google.rpc.BadRequest"].field_violations
result["wrong"] = [code, [violation.field for violation in violations]]
print(json.dumps(result))
