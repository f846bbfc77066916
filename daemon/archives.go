// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"sandpit.dev/blob"
	"sandpit.dev/blob/dir"
	"sandpit.dev/blob/s3"
	"sandpit.dev/fault"
)

// ArchiveConfig says where the disks of archived sandboxes are kept: in one of the two.
type ArchiveConfig struct {
	// Dir is a directory, better one of another disk than the data directory's. "": Data/archive.
	Dir string `yaml:"dir"`
	// S3 is a bucket.
	S3 S3Config `yaml:"s3"`
}

// S3Config is a bucket of Amazon S3 or of what speaks its protocol.
type S3Config struct {
	Endpoint  string `yaml:"endpoint"` // https://…, or http://…; "": Amazon's of the region
	Bucket    string `yaml:"bucket"`   // "": none
	Region    string `yaml:"region"`   // "": us-east-1
	Prefix    string `yaml:"prefix"`   // before the names of objects; it ends with a slash
	PathStyle bool   `yaml:"path_style"`
	// CredentialsFile has lines as AWS_ACCESS_KEY_ID=…; only its owner and its group may read it. "": they
	// are those of the environment.
	CredentialsFile string `yaml:"credentials_file"`

	// Environment are the credentials from the environment alone.
	Environment s3Keys `yaml:"-"`
}

type s3Keys struct{ id, secret, token string }

// variables are the credentials' names, in the environment and in a file of them.
func (k *s3Keys) variables() map[string]*string {
	return map[string]*string{"AWS_ACCESS_KEY_ID": &k.id, "AWS_SECRET_ACCESS_KEY": &k.secret, "AWS_SESSION_TOKEN": &k.token}
}

func (c S3Config) options() s3.Options {
	return s3.Options{Endpoint: c.Endpoint, Bucket: c.Bucket, Region: c.Region, Prefix: c.Prefix, PathStyle: c.PathStyle}
}

func (c ArchiveConfig) check() error {
	if c.S3.Bucket == "" {
		if c.S3 != (S3Config{Environment: c.S3.Environment}) {
			return fault.InvalidField("archive.s3.bucket", "is missing")
		}
		return nil
	}
	if c.Dir != "" {
		return fault.InvalidField("archive.s3", "is given beside archive.dir; archives are kept in one of the two")
	}
	o := c.S3.options()
	return o.Check("archive.s3")
}

// archivesDir is the directory in the data directory that holds archives if no place is configured.
const archivesDir = "archive"

// archives returns the store of archives.
func (c Config) archives() (blob.Store, error) {
	switch a := c.Archive; {
	case a.S3.Bucket != "":
		keys, err := a.S3.keys()
		if err != nil {
			return nil, err
		}
		o := a.S3.options()
		o.AccessKey, o.SecretKey, o.SessionToken = keys.id, keys.secret, keys.token
		return s3.New(o)
	case a.Dir != "":
		return dir.New(a.Dir), nil
	}
	return dir.Named(filepath.Join(c.Data, archivesDir), "directory "+archivesDir+" of the data directory"), nil
}

// maxCredentials bounds the file of credentials.
const maxCredentials = 64 << 10

// keys returns the credentials of the file, or of the environment.
func (c S3Config) keys() (s3Keys, error) {
	if c.CredentialsFile == "" {
		return c.Environment, nil
	}
	const remedy = "write it with the lines AWS_ACCESS_KEY_ID=… and AWS_SECRET_ACCESS_KEY=…, and mode 0600"
	f, err := os.Open(c.CredentialsFile)
	if err != nil {
		return s3Keys{}, fault.Wrap(fault.Invalid, err, "archive.s3.credentials_file: the file %s cannot be read", c.CredentialsFile).WithRemedy(remedy)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil && info.Mode().Perm()&0o037 != 0 {
		return s3Keys{}, fault.New(fault.Invalid, "archive.s3.credentials_file: others than its owner may use the file %s (mode %04o)", c.CredentialsFile, info.Mode().Perm()).WithRemedy("chmod 600 %s", c.CredentialsFile)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxCredentials))
	if err != nil {
		return s3Keys{}, fault.Wrap(fault.Invalid, err, "archive.s3.credentials_file: the file %s cannot be read", c.CredentialsFile).WithRemedy(remedy)
	}
	var k s3Keys
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, value, _ := strings.Cut(line, "=")
		if to := k.variables()[strings.TrimSpace(name)]; to != nil {
			*to = strings.TrimSpace(value)
		} else if line != "" && !strings.HasPrefix(line, "#") {
			return s3Keys{}, fault.New(fault.Invalid, "archive.s3.credentials_file: the file %s has a line that is no credential", c.CredentialsFile).WithRemedy(remedy)
		}
	}
	return k, nil
}
