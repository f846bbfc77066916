// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/fault"
)

func TestWhereArchivesAreKept(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	put := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(keys, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(keys, mode); err != nil {
			t.Fatal(err)
		}
	}
	place := func(file string, env map[string]string) (string, error) {
		t.Helper()
		c := DefaultConfig()
		err := c.ReadFile(write(t, file))
		if err == nil {
			err = c.ReadEnv(func(k string) string { return env[k] })
		}
		if err == nil {
			err = c.Check()
		}
		if err != nil {
			return "", err
		}
		s, err := c.archives()
		if err != nil {
			return "", err
		}
		return s.Place(), nil
	}
	own := map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "hidden"}
	bucket := "archive: {s3: {endpoint: https://s3.example.org, bucket: cold, prefix: a/, path_style: true"
	put("# of the bucket\nAWS_ACCESS_KEY_ID = id\nAWS_SECRET_ACCESS_KEY=hidden\n", 0o600)
	for name, c := range map[string]struct {
		file string
		env  map[string]string
		want string
	}{
		"nothing said":        {"data: /srv/x", nil, "directory archive of the data directory"},
		"a directory":         {"archive: {dir: /mnt/cold}", nil, "directory /mnt/cold"},
		"by the environment":  {"data: /srv/x", map[string]string{"SANDPIT_ARCHIVE_DIR": "/mnt/cold"}, "directory /mnt/cold"},
		"a bucket":            {bucket + "}}", own, "bucket cold at https://s3.example.org, below a/"},
		"with a file of keys": {bucket + ", credentials_file: " + keys + "}}", nil, "bucket cold at https://s3.example.org, below a/"},
	} {
		if got, err := place(c.file, c.env); err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
	refuse := func(name, file string, env map[string]string, words string) {
		t.Helper()
		_, err := place(file, env)
		f := fault.As(err)
		said := ""
		if f != nil {
			said = f.Message
			for _, field := range f.Fields {
				said += " " + field.Name + " " + field.Message
			}
		}
		if !fault.Is(err, fault.Invalid) || !strings.Contains(said, words) || strings.Contains(said, "hidden") {
			t.Errorf("%s: %v (%s)", name, err, said)
		}
	}
	refuse("both", "archive: {dir: /mnt/cold, s3: {bucket: cold}}", own, "archive.s3")
	refuse("no bucket", "archive: {s3: {region: x}}", own, "archive.s3.bucket")
	refuse("no keys", bucket+"}}", nil, "no keys")
	refuse("an endpoint", "archive: {s3: {bucket: cold, endpoint: example.org}}", own, "archive.s3.endpoint")
	refuse("no file", bucket+", credentials_file: /nowhere/keys}}", nil, "credentials_file")
	put("AWS_ACCESS_KEY_ID=id\nAWS_SECRET_ACCESS_KEY=hidden\n", 0o644)
	refuse("a file for all", bucket+", credentials_file: "+keys+"}}", nil, "0644")
	put("hidden\n", 0o600)
	refuse("another file", bucket+", credentials_file: "+keys+"}}", nil, "no credential")
}
