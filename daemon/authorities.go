// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"sandpit.dev/fault"
)

// Bounds of network.ca_files: what is in them is written into each sandbox that has a network.
const (
	maxAuthorityFile = 1 << 20 // bytes
	maxAuthorities   = 64      // certificates of all files
)

// caFiles is the field of the configuration.
const caFiles = "network.ca_files"

// authorities reads the operator's files of authorities, and returns their certificates in PEM, and
// the host's roots with them. Both are nil where there are no files.
func authorities(files []string) ([]byte, *x509.CertPool, error) {
	all, err := readAuthorities(files)
	if err != nil || len(all) == 0 {
		return nil, nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "cannot read the authorities that this host trusts")
	}
	var text bytes.Buffer
	for _, c := range all {
		roots.AddCert(c)
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a buffer takes all
	}
	return text.Bytes(), roots, nil
}

// readAuthorities returns the certificates of the files, each once. A block that is not the
// certificate of an authority is an error: the operator means the file to be used whole.
func readAuthorities(files []string) (all []*x509.Certificate, err error) {
	for _, name := range files {
		of, err := readAuthorityFile(name)
		if err != nil {
			return nil, err
		}
		for _, c := range of {
			known := false
			for _, o := range all {
				known = known || o.Equal(c)
			}
			if !known {
				all = append(all, c)
			}
		}
	}
	if len(all) > maxAuthorities {
		return nil, fault.InvalidField(caFiles, "the files have %d certificates, more than %d", len(all), maxAuthorities).
			WithRemedy("name those of your own authorities; the usual ones are trusted without")
	}
	return all, nil
}

func readAuthorityFile(name string) (all []*x509.Certificate, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fault.InvalidField(caFiles, "%q cannot be read: %v", name, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxAuthorityFile+1))
	switch {
	case err != nil:
		return nil, fault.InvalidField(caFiles, "%q cannot be read: %v", name, err)
	case len(text) > maxAuthorityFile:
		return nil, fault.InvalidField(caFiles, "%q has more than %d bytes", name, maxAuthorityFile)
	}
	const remedy = "write the authority's certificate in PEM, which begins with -----BEGIN CERTIFICATE-----; from DER: openssl x509 -inform der -in FILE"
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		switch {
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return nil, fault.InvalidField(caFiles, "%q has a private key, which no sandbox may see", name).WithRemedy("name a file with the certificate alone")
		case block.Type != "CERTIFICATE":
			return nil, fault.InvalidField(caFiles, "%q has a %.40q, which is not a certificate", name, block.Type).WithRemedy(remedy)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fault.InvalidField(caFiles, "%q: certificate %d cannot be read: %v", name, len(all)+1, err).WithRemedy(remedy)
		}
		if c.BasicConstraintsValid && !c.IsCA && !bytes.Equal(c.RawIssuer, c.RawSubject) {
			return nil, fault.InvalidField(caFiles, "%q: certificate %d, of %.80q, is a server's and not an authority's", name, len(all)+1, c.Subject).
				WithRemedy("name the certificate of the authority that issued it: %.80q", c.Issuer)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fault.InvalidField(caFiles, "%q has no certificate in PEM", name).WithRemedy(remedy)
	}
	if rest := bytes.TrimSpace(text); bytes.Contains(rest, []byte("-----BEGIN")) {
		return nil, fault.InvalidField(caFiles, "%q: what follows certificate %d cannot be read", name, len(all)).WithRemedy(remedy)
	}
	return all, nil
}

// checkAuthorities is the doctor's check of the files.
func checkAuthorities(files []string, now time.Time) Check {
	const name = "authorities"
	all, err := readAuthorities(files)
	if err != nil {
		fe := fault.As(err)
		return failure(name, fe.Remedy, "%s: %s", caFiles, fe.Message)
	}
	var old []string
	for _, c := range all {
		if now.After(c.NotAfter) {
			old = append(old, fmt.Sprintf("%.80q", c.Subject))
		}
	}
	if len(old) > 0 {
		return warning(name, "replace them in the files of "+caFiles+", and start the server again", "of %d in %s, these have expired: %s", len(all), caFiles, strings.Join(old, ", "))
	}
	return ok(name, "%d in %s", len(all), caFiles)
}
