// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
)

// chatty answers a request and says the value of a secret afterwards, unasked.
const chatty = `import os, socket, time
l = socket.create_server(('127.0.0.1', 8010))
while True:
    c, _ = l.accept()
    if not c.recv(65536): continue
    c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    for _ in range(20):
        try: c.sendall(b'unasked: ' + os.environ['BOXSEC'].encode() + b'\r\n')
        except OSError: break
        time.sleep(.05)
`

// What a program says past its answer is logged by the library that speaks HTTP, by Go's standard
// logger: without the values of secrets, like all else.
func TestWhatLibrariesLogHasNoSecrets(t *testing.T) {
	images := needRoot(t)
	dir := t.TempDir()
	s := &server{dir: dir, env: append(environment(dir, images), "SANDPIT_LOG_LEVEL=debug", "VALUE=opensesame-of-the-box")}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.cleanUp(); err != nil {
			t.Error(err)
		}
	})
	do := func(stdin string, args ...string) []byte {
		t.Helper()
		cmd := s.command(args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return out
	}
	do("", "create", "--name", "box")
	do("", "secret", "set", "BOXSEC", "--from-env", "VALUE")
	do(chatty, "exec", "-i", "box", "-c", "cat > chatty.py")
	do("", "exec", "-n", "box", "-c", `nohup python3 chatty.py >log 2>&1 &
python3 -c 'import socket, time
while socket.socket().connect_ex(("127.0.0.1", 8010)): time.sleep(.02)'`)
	var link v1.Preview
	if err := json.Unmarshal(do("", "preview", "box", "8010", "-o", "json"), &link); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "run", "server.json"))
	var note struct{ URL string }
	if err == nil {
		err = json.Unmarshal(b, &note)
	}
	if err != nil {
		t.Fatal(err)
	}
	v := browser(t, strings.TrimPrefix(note.URL, "http://"))
	if status, body := v.open(link.URL); status != 200 || body != "ok" {
		t.Fatalf("the preview: got %d %s", status, body)
	}
	var log string
	for end := time.Now().Add(time.Minute); !strings.Contains(log, "Unsolicited response"); {
		v.open(link.URL) // 502 where it comes by a connection on which the program spoke already
		b, err := os.ReadFile(filepath.Join(dir, "serve.log"))
		if log = string(b); err != nil || time.Now().After(end) {
			t.Fatalf("the library logged nothing: %v", err)
		}
	}
	if strings.Contains(log, "opensesame") || !strings.Contains(log, "[secret BOXSEC]") {
		t.Errorf("the log has the value, or not its name:\n%s", log)
	}
}
