// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package configured

import (
	"io"
	"os"
	"strings"

	"sandpit.dev/fault"
)

// Keys are the credentials of a bucket.
type Keys struct{ id, secret, token string }

// Variables returns where the credentials go, by their names in the environment and in a file of them.
func (k *Keys) Variables() map[string]*string {
	return map[string]*string{"AWS_ACCESS_KEY_ID": &k.id, "AWS_SECRET_ACCESS_KEY": &k.secret, "AWS_SESSION_TOKEN": &k.token}
}

// maxCredentials bounds the file of credentials.
const maxCredentials = 64 << 10

// keys returns the credentials of the file, or of the environment.
func (c S3) keys(section string) (Keys, error) {
	if c.CredentialsFile == "" {
		return c.Environment, nil
	}
	const remedy = "write it with the lines AWS_ACCESS_KEY_ID=… and AWS_SECRET_ACCESS_KEY=…, and mode 0600"
	f, err := os.Open(c.CredentialsFile)
	if err != nil {
		return Keys{}, fault.Wrap(fault.Invalid, err, "%s.s3.credentials_file: the file %s cannot be read", section, c.CredentialsFile).WithRemedy(remedy)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil && info.Mode().Perm()&0o037 != 0 {
		return Keys{}, fault.New(fault.Invalid, "%s.s3.credentials_file: others than its owner may use the file %s (mode %04o)", section, c.CredentialsFile, info.Mode().Perm()).WithRemedy("chmod 600 %s", c.CredentialsFile)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxCredentials))
	if err != nil {
		return Keys{}, fault.Wrap(fault.Invalid, err, "%s.s3.credentials_file: the file %s cannot be read", section, c.CredentialsFile).WithRemedy(remedy)
	}
	var k Keys
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, value, _ := strings.Cut(line, "=")
		if to := k.Variables()[strings.TrimSpace(name)]; to != nil {
			*to = strings.TrimSpace(value)
		} else if line != "" && !strings.HasPrefix(line, "#") {
			return Keys{}, fault.New(fault.Invalid, "%s.s3.credentials_file: the file %s has a line that is no credential", section, c.CredentialsFile).WithRemedy(remedy)
		}
	}
	return k, nil
}
