// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// signed returns the address of a file below a sandbox's toolbox, as clients sign it.
func signed(key, id, op, method, path string, expires int64) string {
	h := hmac.New(sha256.New, []byte(key))
	fmt.Fprintf(h, "v1:files:%s:%s:%d", method, path, expires)
	query := url.Values{"path": {path}, "expires": {fmt.Sprint(expires)}, "signature": {"v1_" + base64.RawURLEncoding.EncodeToString(h.Sum(nil))}}
	return "/toolbox/" + id + "/files/" + op + "?" + query.Encode()
}

func (d *door) signingKey(token, method, path string) string {
	d.t.Helper()
	status, b := d.ask(token, method, path, "", nil)
	var key string
	if err := json.Unmarshal(b, &key); err != nil || status != 200 || len(key) < 40 {
		d.t.Fatalf("%s %s: %d %s", method, path, status, b)
	}
	return key
}

func TestASignatureIsForOneFileOneWayUntilItsTime(t *testing.T) {
	d := open(t)
	id, other := d.create(d.token, `{"name":"mine"}`), d.create(d.token, `{"name":"other"}`)
	key, foreign := d.signingKey(d.token, "GET", "/sandbox/mine/signing-key"), d.signingKey(d.token, "GET", "/sandbox/other/signing-key")
	if key == foreign || key != d.signingKey(d.token, "GET", "/sandbox/"+id+"/signing-key") {
		t.Errorf("a key is the sandbox's, and stays: %q, %q", key, foreign)
	}
	hour := time.Now().Add(time.Hour).Unix()
	const media, form = "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\nhello\r\n--b--\r\n"
	put := func(address string) (int, []byte) {
		return d.ask("", "POST", address, media, strings.NewReader(form))
	}
	up, down := signed(key, id, "upload-v2", "POST", "/tmp/f", hour), signed(key, id, "download", "GET", "/tmp/f", hour)
	if status, b := put(up); status != 200 || !strings.Contains(string(b), `"/tmp/f"`) {
		t.Fatalf("up: %d %s", status, b)
	}
	for _, address := range []string{down, signed(key, id, "download", "GET", "/tmp/f", 0), strings.Replace(down, "/files/", "/toolbox/files/", 1)} {
		if status, b := d.ask("", "GET", address, "", nil); status != 200 || string(b) != "hello" {
			t.Errorf("down: %d %s", status, b)
		}
	}
	if status, b := d.ask("", "HEAD", down, "", nil); status != 200 || len(b) != 0 {
		t.Errorf("its head: %d %s", status, b)
	}
	_, query, _ := strings.Cut(down, "?")
	for what, c := range map[string]struct {
		method, address string
		want            int
	}{
		"another sandbox":          {"GET", "/toolbox/" + other + "/files/download?" + query, 401},
		"a sandbox that is none":   {"GET", "/toolbox/none/files/download?" + query, 401},
		"a name, which is no id":   {"GET", "/toolbox/mine/files/download?" + query, 401},
		"another key":              {"GET", signed(foreign, id, "download", "GET", "/tmp/f", hour), 401},
		"no key":                   {"GET", signed("", id, "download", "GET", "/tmp/f", hour), 401},
		"another path":             {"GET", strings.Replace(down, "path=%2Ftmp%2Ff", "path=%2Fetc%2Fpasswd", 1), 401},
		"another spelling":         {"GET", strings.Replace(down, "path=%2Ftmp%2Ff", "path=%2Ftmp%2F.%2Ff", 1), 401},
		"another hour":             {"GET", strings.Replace(down, fmt.Sprint(hour), fmt.Sprint(hour+3600), 1), 401},
		"no end":                   {"GET", strings.Replace(down, fmt.Sprint(hour), "0", 1), 401},
		"an hour that has passed":  {"GET", signed(key, id, "download", "GET", "/tmp/f", time.Now().Unix()-1), 401},
		"an hour before all":       {"GET", signed(key, id, "download", "GET", "/tmp/f", -1), 400},
		"the signature of an up":   {"GET", signed(key, id, "download", "POST", "/tmp/f", hour), 401},
		"the signature of a down":  {"POST", signed(key, id, "upload-v2", "GET", "/tmp/f", hour), 401},
		"a down by POST":           {"POST", down, 405},
		"an up by GET":             {"GET", up, 405},
		"an up by PUT":             {"PUT", up, 405},
		"no signature":             {"GET", strings.Split(down, "signature=")[0] + "signature=", 401},
		"a longer signature":       {"GET", down + "A", 401},
		"two paths":                {"GET", down + "&path=%2Fetc%2Fpasswd", 400},
		"a query that is no query": {"GET", down + "&x=%zz", 400},
		"a list of files":          {"GET", strings.Replace(down, "/download", "", 1), 401},
		"a command":                {"POST", "/toolbox/" + id + "/process/execute?" + query, 401},
		"a directory":              {"GET", signed(key, id, "download", "GET", "/tmp", hour), 400},
		"what its user may not":    {"GET", signed(key, id, "download", "GET", "/etc/shadow", hour), 403},
	} {
		status, b := d.ask("", c.method, c.address, media, strings.NewReader(form))
		if c.method == "GET" {
			status, b = d.ask("", c.method, c.address, "", nil)
		}
		d.refused(what, status, b, c.want, 429) // 429: of many that were not valid the next have to wait
		if status == 429 && c.want != 401 {
			t.Errorf("%s: %d %s", what, status, b)
		}
	}
	// A token goes before a signature, whatever that is.
	mallet, reader := d.run("token", "create", "--name", "mallet", "--project", "elsewhere"), d.run("token", "create", "--name", "reader", "--scope", "sandboxes:read")
	alone := d.run("token", "create", "--sandbox", id)
	status, b := d.ask(mallet, "GET", down, "", nil)
	d.refused("another project's token", status, b, 404)
	// The key is for who may write all of the project's files.
	for token, want := range map[string]int{mallet: 404, reader: 403, alone: 403, "": 401} {
		for _, c := range []string{"GET /sandbox/mine/signing-key", "POST /sandbox/mine/signing-key/rotate"} {
			method, path, _ := strings.Cut(c, " ")
			status, b := d.ask(token, method, path, "", nil)
			d.refused(c, status, b, want)
		}
	}
	next := d.signingKey(d.token, "POST", "/sandbox/mine/signing-key/rotate")
	if next == key || next != d.signingKey(d.token, "GET", "/sandbox/mine/signing-key") || foreign != d.signingKey(d.token, "GET", "/sandbox/other/signing-key") {
		t.Error("a key that is rotated is another, and no other sandbox's is")
	}
	status, b = d.ask("", "GET", down, "", nil)
	d.refused("an address of the key before", status, b, 401, 429)
	if status, b := d.ask("", "GET", signed(next, id, "download", "GET", "/tmp/f", hour), "", nil); status != 200 || string(b) != "hello" {
		t.Errorf("by the new key: %d %s", status, b)
	}
	// Its size is what the disk has room for.
	const fill = `{"command":"cd /tmp; n=0; for s in 1G 100M 10M 1M 100K 4K; do while fallocate -l $s fill.$n 2>/dev/null; do n=$((n+1)); done; rm -f fill.$n; done; test $n -gt 2"}`
	if status, b := d.ask(d.token, "POST", "/toolbox/"+id+"/process/execute", js, strings.NewReader(fill)); status != 200 || !strings.Contains(string(b), `"exitCode":0`) {
		t.Fatalf("fill the disk: %d %s", status, b)
	}
	large := strings.Replace(form, "hello", strings.Repeat("x", 200<<10), 1)
	status, b = d.ask("", "POST", signed(next, id, "upload-v2", "POST", "/tmp/g", hour), media, strings.NewReader(large))
	d.refused("more than the disk has", status, b, 422)
	if status, b := d.ask("", "GET", signed(next, id, "download", "GET", "/tmp/f", hour), "", nil); status != 200 || string(b) != "hello" {
		t.Errorf("what was there: %d %s", status, b)
	}
	if status, b := d.ask(d.token, "DELETE", "/sandbox/"+id, "", nil); status != 200 {
		t.Fatalf("delete: %d %s", status, b)
	}
	status, b = d.ask("", "GET", signed(next, id, "download", "GET", "/tmp/f", hour), "", nil)
	d.refused("of a sandbox that is gone", status, b, 401, 429)
}
