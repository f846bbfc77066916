// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretsAndPoolsAreNotOthers(t *testing.T) {
	d := open(t)
	const value = "sk-the-value-of-the-key"
	id := d.create(d.token, `{"name":"mine"}`)
	status, b := d.ask(d.token, "POST", "/secret", js, strings.NewReader(`{"name":"key","value":"`+value+`","hosts":["api.example.com"]}`))
	if status != 201 || bytes.Contains(b, []byte(value)) {
		t.Fatalf("create: %d %s", status, b)
	}
	if status, b := d.ask(d.token, "PUT", "/sandbox/mine/secrets", js, strings.NewReader(`{"secrets":[{"KEY":"key"}]}`)); status != 200 {
		t.Fatalf("attach: %d %s", status, b)
	}
	mallet := d.run("token", "create", "--name", "mallet", "--project", "elsewhere")
	writer := d.run("token", "create", "--name", "writer")
	alone := d.run("token", "create", "--sandbox", id)
	theirs := d.create(mallet, `{"name":"theirs"}`)
	for _, c := range []struct {
		who, token, method, path, body string
		want                           int
	}{
		{"another project", mallet, "GET", "/secret/key", "", 404},
		{"another project", mallet, "PATCH", "/secret/key", `{"hosts":["mallet.example.com"]}`, 403},
		{"another project", mallet, "DELETE", "/secret/key", "", 403},
		{"another project", mallet, "PUT", "/sandbox/mine/secrets", `{"secrets":[]}`, 404},
		{"another project", mallet, "PUT", "/sandbox/" + theirs + "/secrets", `{"secrets":[{"KEY":"key"}]}`, 404},
		{"another project", mallet, "POST", "/sandbox", `{"secrets":[{"KEY":"key"}]}`, 404},
		{"who is no administrator", writer, "POST", "/secret", `{"name":"other","value":"long enough","hosts":["a.example.com"]}`, 403},
		{"who is no administrator", writer, "PATCH", "/secret/key", `{"hosts":["mallet.example.com"]}`, 403},
		{"who is no administrator", writer, "DELETE", "/secret/key", "", 403},
		{"a sandbox's token", alone, "GET", "/secret", "", 403},
		{"a sandbox's token", alone, "PUT", "/sandbox/mine/secrets", `{"secrets":[]}`, 403},
		{"nobody", "", "GET", "/secret", "", 401},
		{"nobody", "", "PUT", "/sandbox/mine/secrets", `{"secrets":[]}`, 401},
	} {
		status, b := d.ask(c.token, c.method, c.path, js, strings.NewReader(c.body))
		d.refused(c.who+": "+c.method+" "+c.path, status, b, c.want)
	}
	// Pools are the server's.
	if status, b := d.ask(d.token, "POST", "/warm-pools", js, strings.NewReader(`{"snapshot":"python","pool":1}`)); status != 201 {
		t.Fatalf("a pool: %d %s", status, b)
	}
	admin := d.run("token", "create", "--name", "admin", "--scope", "admin")
	for _, token := range []string{mallet, writer, admin} {
		for _, c := range [][3]string{{"POST", "/warm-pools", `{"snapshot":"node","pool":1}`}, {"PATCH", "/warm-pools/python", `{"pool":9}`}, {"DELETE", "/warm-pools/python", ""}} {
			status, b := d.ask(token, c[0], c[1], js, strings.NewReader(c[2]))
			d.refused("who does not run the server: "+c[0]+" "+c[1], status, b, 403)
		}
	}
	if status, b := d.ask(d.token, "DELETE", "/warm-pools/python", "", nil); status != 204 {
		t.Errorf("delete a pool: %d %s", status, b)
	}
	if status, b := d.ask(mallet, "GET", "/secret/paginated", "", nil); status != 200 || !bytes.Contains(b, []byte(`"items":[]`)) {
		t.Errorf("another project's list: %d %s", status, b)
	}
	for _, path := range []string{"/secret", "/secret/key", "/secret/paginated", "/sandbox/mine"} {
		if status, b := d.ask(d.token, "GET", path, "", nil); status != 200 || bytes.Contains(b, []byte(value)) {
			t.Errorf("%s: %d %s", path, status, b)
		}
	}
	if status, b := d.ask(mallet, "DELETE", "/sandbox/"+theirs, "", nil); status != 200 { // the cleanup sees the project default alone
		t.Errorf("delete: %d %s", status, b)
	}
	// Nothing inside has it, whoever looks.
	const look = `{"command":"env; sudo -n env; cat /proc/[0-9]*/environ | tr -d '\\0' ; grep -rslF sk-the-value /etc /home /tmp /usr/local/share; echo $KEY"}`
	status, b = d.ask(d.token, "POST", "/toolbox/mine/process/execute", js, strings.NewReader(look))
	if status != 200 || bytes.Contains(b, []byte("sk-the-value")) || !bytes.Contains(b, []byte("sandpit-vault-")) {
		t.Errorf("inside: %d %s", status, b)
	}
	// Nothing on the server's disk has it in plain text.
	for _, v := range d.env {
		data, ok := strings.CutPrefix(v, "SANDPIT_DATA=")
		if !ok {
			continue
		}
		found, looked := "", 0
		err := filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || strings.Contains(path, "/layers/") {
				return nil // what is gone meanwhile, and what is inside
			}
			if info, err := e.Info(); err != nil || info.Size() > 64<<20 {
				return nil
			}
			b, err := os.ReadFile(path)
			looked++
			if err == nil && bytes.Contains(b, []byte(value)) {
				found = path
			}
			return nil
		})
		if err != nil || found != "" || looked < 3 {
			t.Errorf("of %d files of the server %q has the value in plain text (%v)", looked, found, err)
		}
	}
}
