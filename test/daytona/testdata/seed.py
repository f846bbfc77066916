# The example of the fourth seed, as it is written there.
from daytona import Daytona
daytona = Daytona() # reads DAYTONA_API_KEY from env
sandbox = daytona.create() # boots in well under a second
try:
    resp = sandbox.process.exec("python3 --version")
    print(resp.exit_code, resp.result)
finally:
    sandbox.delete() # ALWAYS clean up (see lifecycle rules below)
