// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package configured is where blobs are kept as a configuration says it: in a directory, or in a bucket.
package configured

import (
	"path/filepath"

	"sandpit.dev/blob"
	"sandpit.dev/blob/dir"
	"sandpit.dev/blob/s3"
	"sandpit.dev/fault"
)

// Place is a section of a configuration: one of the two, or nothing.
type Place struct {
	// Dir is a directory, better one of another disk than the data directory's.
	Dir string `yaml:"dir"`
	// S3 is a bucket.
	S3 S3 `yaml:"s3"`
}

// S3 is a bucket of Amazon S3 or of what speaks its protocol.
type S3 struct {
	Endpoint  string `yaml:"endpoint"` // https://…, or http://…; "": Amazon's of the region
	Bucket    string `yaml:"bucket"`   // "": none
	Region    string `yaml:"region"`   // "": us-east-1
	Prefix    string `yaml:"prefix"`   // before the names of objects; it ends with a slash
	PathStyle bool   `yaml:"path_style"`
	// CredentialsFile has lines as AWS_ACCESS_KEY_ID=…; only its owner and its group may read it. "": they
	// are those of the environment.
	CredentialsFile string `yaml:"credentials_file"`

	// Environment are the credentials from the environment alone.
	Environment Keys `yaml:"-"`
}

func (c S3) options() s3.Options {
	return s3.Options{Endpoint: c.Endpoint, Bucket: c.Bucket, Region: c.Region, Prefix: c.Prefix, PathStyle: c.PathStyle}
}

// IsZero reports whether nothing is said, whatever is in the environment.
func (c Place) IsZero() bool { return c == Place{S3: S3{Environment: c.S3.Environment}} }

// Check checks it; section is its name in the configuration.
func (c Place) Check(section string) error {
	if c.S3.Bucket == "" {
		if !(Place{S3: c.S3}).IsZero() {
			return fault.InvalidField(section+".s3.bucket", "is missing")
		}
		return nil
	}
	if c.Dir != "" {
		return fault.InvalidField(section+".s3", "is given beside %s.dir; one of the two is where they are kept", section)
	}
	o := c.S3.options()
	return o.Check(section + ".s3")
}

// Open returns what is configured, for a purpose, or nil if nothing is. below is a name in the directory, or the bucket, for who shares it with others;
// "": it has it alone.
func (c Place) Open(p blob.Purpose, below string) (blob.Store, error) {
	switch {
	case c.S3.Bucket != "":
		keys, err := c.S3.keys(p.Section)
		if err != nil {
			return nil, err
		}
		o := c.S3.options()
		o.Purpose, o.AccessKey, o.SecretKey, o.SessionToken = p, keys.id, keys.secret, keys.token
		if below != "" {
			o.Prefix += below + "/"
		}
		return s3.New(o)
	case c.Dir != "":
		return dir.New(filepath.Join(c.Dir, below)).For(p), nil
	}
	return nil, nil
}
