"""Write a key and a certificate, valid for itself alone, to one file: whoever has the file is of the cluster."""

import sys
from pathlib import Path

from distributed.security import Security

made = Security.temporary()
path = Path(sys.argv[1])
new = path.with_suffix(".new")
new.touch(mode=0o600)
new.write_text(made.tls_client_key + made.tls_client_cert)
new.rename(path)
