// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/packagestest"
	"sandpit.dev/test/servertest"
)

// Python's SDK sends local files by https alone. The certificate is one that the program made. What sends the files takes no
// authority from the environment, as all else does, but from the machine's file, which the client has in a namespace of its own.
func TestPythonSendsLocalFilesOverTLS(t *testing.T) {
	python := packagestest.NeedPip(t, "daytona-pip", ".")
	servertest.Need(t)
	s := servertest.New(t, program, imagetest.Own(t))
	dir := t.TempDir()
	s.Run("tls", "init", "localhost", "--dir", dir)
	ca := filepath.Join(dir, "ca.pem")
	s.Env = append(s.Env, "SANDPIT_DOMAIN=localhost", "SANDPIT_TLS_LISTEN=127.0.0.1:0",
		"SANDPIT_TLS_CERT="+filepath.Join(dir, "cert.pem"), "SANDPIT_TLS_KEY="+filepath.Join(dir, "key.pem"))
	s.Start()
	found := regexp.MustCompile(`msg="listening with TLS" address=127\.0\.0\.1(:\d+)`).FindStringSubmatch(s.Log())
	if found == nil {
		t.Fatalf("the server names no address with TLS:\n%s", s.Log())
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
	defer cancel()
	const inside = `mount --bind "$1" /etc/ssl/certs/ca-certificates.crt; exec "$2" testdata/tls.py`
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "sh", "-ec", inside, "sh", ca, python)
	passes(t, cmd, append(clients(s), "DAYTONA_API_URL=https://localhost"+found[1]+"/daytona", "SSL_CERT_FILE="+ca, "REQUESTS_CA_BUNDLE="+ca))
}
