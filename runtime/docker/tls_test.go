// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/runtime/runtimetest"
	"sandpit.dev/sandbox"
)

// authority signs certificates of an Engine and of who may use it.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority of a test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &key.PublicKey, key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// signed is a certificate: of whom, for whom and until when.
type signed struct {
	by   *authority
	host string // an address; "": a client's
	ends time.Time
}

// directory returns one as DOCKER_CERT_PATH names it: with an authority's certificate, and with one of one's own, unless by is nil.
func (a *authority) directory(own signed) string {
	a.t.Helper()
	dir := a.t.TempDir()
	err := write(dir, "ca.pem", "CERTIFICATE", a.cert.Raw)
	if own.by != nil {
		key, made := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if made != nil {
			a.t.Fatal(made)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: own.ends.Add(-2 * time.Hour), NotAfter: own.ends,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		if own.host != "" {
			c.ExtKeyUsage, c.IPAddresses = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []net.IP{net.ParseIP(own.host)}
		}
		der, made := x509.CreateCertificate(rand.Reader, c, own.by.cert, &key.PublicKey, own.by.key)
		pkcs8, failed := x509.MarshalPKCS8PrivateKey(key)
		err = errors.Join(err, made, failed, write(dir, "cert.pem", "CERTIFICATE", der), write(dir, "key.pem", "PRIVATE KEY", pkcs8))
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return dir
}

func write(dir, name, kind string, der []byte) error {
	return os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// An Engine elsewhere: in a network of its own, reached over TCP with TLS alone, by who has a certificate.
func TestAnEngineOverTLS(t *testing.T) {
	skiptest.WithShort(t, "an Engine makes dozens of containers")
	ours, other := newAuthority(t), newAuthority(t)
	soon := time.Now().Add(time.Hour)
	h := dockerdtest.NewTLS(t, ours.directory(signed{ours, "127.0.0.1", soon}))
	image := lendPython(t, h)
	address := h.ServeTCP()
	certs := ours.directory(signed{ours, "", soon})
	// As the environment of Docker's own programs says it.
	env := func(certs string) engineapi.Environment {
		vars := map[string]string{"DOCKER_HOST": "tcp://" + address, "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": certs}
		return engineapi.EnvironmentOf(func(name string) string { return vars[name] }, os.Geteuid())
	}
	for name, test := range map[string]struct {
		env   engineapi.Environment
		code  fault.Code
		words string
	}{
		"AnotherAuthority":       {env(other.directory(signed{ours, "", soon})), fault.Denied, "no certificate of the authority in DOCKER_CERT_PATH"},
		"NoCertificate":          {env(ours.directory(signed{})), fault.Denied, "does not accept"},
		"ACertificateOfAnother":  {env(ours.directory(signed{other, "", soon})), fault.Denied, "does not accept the certificate in DOCKER_CERT_PATH"},
		"AnExpiredCertificate":   {env(ours.directory(signed{ours, "", time.Now().Add(-time.Minute)})), fault.Denied, "expired"},
		"ACertificateOfAnEngine": {env(ours.directory(signed{ours, "127.0.0.1", soon})), fault.Denied, "does not accept the certificate in DOCKER_CERT_PATH"},
		"AnotherName":            {engineapi.Environment{Host: strings.Replace("tcp://"+address, "127.0.0.1", "localhost", 1), CertPath: certs}, fault.Denied, "name the Engine in DOCKER_HOST as its certificate does"},
		"WithoutTLS":             {engineapi.Environment{Host: "tcp://" + address}, fault.Unavailable, "DOCKER_TLS_VERIFY"},
		"NoDirectory":            {env(t.TempDir() + "/none"), fault.Invalid, "has no ca.pem"},
	} {
		_, err := engineapi.Find(t.Context(), test.env)
		if f := fault.As(err); err == nil || f.Code != test.code || f.Remedy == "" || !strings.Contains(f.Message+"; "+f.Remedy, test.words) {
			t.Errorf("%s: got %v (%s; %s), want %s with %q", name, err, fault.Of(err), fault.As(err).Remedy, test.code, test.words)
		}
	}
	without := []string{"Lifecycle", "Restart", "Limits", "Pause", "Resize", "Meter", "Snapshots", "Volumes", "Changes", "Watches", "Users", "Told", "Isolation", "Neighbours", "Concurrency"}
	soak := os.Getenv("SANDPIT_SOAK") == "1"
	if soak {
		without = nil
	}
	open := func(t *testing.T, dir, namespace string) *docker.Driver {
		return openWith(t, docker.Options{Dir: dir, Namespace: namespace, Engine: env(certs)})
	}
	t.Run("FilesAndLives", func(t *testing.T) {
		p := newPlace(t, h)
		p.must(p.driver.Close())
		p.driver = open(t, p.dir, p.namespace)
		filesAndLives(p, func() *docker.Driver { return open(t, p.dir, p.namespace) })
		if soak {
			agentPasses(t, p)
		}
	})
	t.Run("Conformance", func(t *testing.T) {
		runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
			dir, namespace := t.TempDir(), newNamespace()
			return runtimetest.Harness{
				Image: image, Coarse: coarse,
				Open:      func(t *testing.T) runtime.Driver { return open(t, dir, namespace) },
				Must:      []runtime.Feature{runtime.LimitMemory, runtime.RootUser, runtime.Reopen, runtime.Network, runtime.Volumes},
				Lacks:     lacksOverStreams(t, h),
				Otherwise: otherwise(),
			}
		}, without...)
	})
}

// filesAndLives has a sandbox keep a file over its lives, and over those of its server, and leave nothing.
func filesAndLives(p *place, again func() *docker.Driver) {
	ctx := p.t.Context()
	i, spec, _ := p.create()
	content := make([]byte, 4<<20)
	_, _ = rand.Read(content) // never fails
	const path = "/workspace/large"
	_, _, err := agent.NewClient(i.Dial).WriteFile(ctx, path, bytes.NewReader(content), sandbox.WriteFileOptions{Mode: 0o640})
	p.must(err)
	has := func(i runtime.Instance) {
		p.t.Helper()
		info, r, err := agent.NewClient(i.Dial).ReadFile(ctx, path, sandbox.ReadFileOptions{})
		p.must(err)
		defer func() { _ = r.Close() }()
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) || info.Mode.Perm() != 0o640 {
			p.t.Errorf("its file has %d bytes and %v, %v", len(got), info.Mode, err)
		}
	}
	has(i)
	p.must(i.Stop(ctx, 0))
	p.must(i.Start(ctx, spec))
	has(i)
	next := again()
	found, err := next.Open(ctx, runtime.Handle{ID: spec.ID})
	p.must(err)
	has(found)
	p.must(next.Close())
	p.must(i.Remove(ctx))
	if ids := p.ids(); len(ids) != 0 {
		p.t.Errorf("left are %v", ids)
	}
}
