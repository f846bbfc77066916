// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"encoding/json"
	"io"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// listing reads the answer of the route that lists directories and reads files: an answer that is
// not an array is a file.
func listing(r io.Reader, path string) ([]v1.FileInfo, error) {
	b := bufio.NewReader(r)
	if first, err := b.Peek(1); err == nil && first[0] != '[' {
		return nil, fault.InvalidField("path", "%q is a file, not a directory", path)
	}
	var out []v1.FileInfo
	if err := json.NewDecoder(b).Decode(&out); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the server's listing cannot be read")
	}
	return out, nil
}
