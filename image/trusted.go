// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// What programs of the host name a file of authorities by. Node's are added to its own, apt's are all.
const (
	nodeAuthorities = "NODE_EXTRA_CA_CERTS"
	aptAuthorities  = "Acquire::https::CAInfo"
)

// maxTrusted bounds a file of authorities of the host's, in bytes.
const maxTrusted = 8 << 20

// hostBundle returns the file of the authorities that the host trusts: set, where that is not empty,
// else where systems have it; "" if there is none.
func hostBundle(set string) string {
	if set != "" {
		return set
	}
	for _, name := range []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"} {
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	return ""
}

// aptTrusts returns the file of authorities by apt's options, the last of which holds, else the host's.
func aptTrusts(options []string) string {
	set := ""
	for _, o := range options {
		if key, value, _ := strings.Cut(o, " "); strings.EqualFold(key, aptAuthorities) {
			set = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return hostBundle(set)
}

// trusted returns the build's authorities after those of the file of the host; "": there is none.
func (w *work) trusted(host string) ([]byte, error) {
	if host == "" {
		return w.authorities, nil
	}
	f, err := os.Open(host)
	if err != nil {
		return nil, fmt.Errorf("read the authorities that this host trusts: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTrusted+1))
	if err != nil {
		return nil, fmt.Errorf("read the authorities that this host trusts: %w", err)
	}
	if len(text) > maxTrusted {
		return nil, fmt.Errorf("%s, with the authorities that this host trusts, has more than %d bytes", host, maxTrusted)
	}
	return append(append(bytes.TrimRight(text, "\n"), '\n'), w.authorities...), nil
}

// HostAuthorities returns the authorities that this host trusts, in PEM, and more behind them.
func HostAuthorities(more []byte) ([]byte, error) {
	w := &work{authorities: more}
	return w.trusted(hostBundle(os.Getenv("SSL_CERT_FILE")))
}

// trustFile writes trusted into a file beside the root, and returns its path.
func (w *work) trustFile(name, host string) (string, error) {
	text, err := w.trusted(host)
	if err != nil {
		return "", err
	}
	path := filepath.Join(w.dir, name)
	return path, os.WriteFile(path, text, 0o644)
}
