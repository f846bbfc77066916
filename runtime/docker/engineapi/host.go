// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/fault"
)

// Host is where an Engine listens.
type Host struct {
	network, address string      // as of net.Dial
	tls              *tls.Config // nil: without
	name             string      // as people write it
}

// String returns it as DOCKER_HOST has it.
func (h Host) String() string { return h.name }

// Local reports whether it is a socket of this machine.
func (h Host) Local() bool { return h.network == "unix" }

// Dial connects to where it listens, without TLS and without a word.
func (h Host) Dial(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, h.network, h.address)
}

// expired returns when the certificate by which the Engine would know us expired; "": it did not, or there is none.
func (h Host) expired() string {
	if h.tls == nil || len(h.tls.Certificates) == 0 {
		return ""
	}
	leaf := h.tls.Certificates[0].Leaf
	if leaf == nil || time.Now().Before(leaf.NotAfter) {
		return ""
	}
	return leaf.NotAfter.UTC().Format(time.RFC3339)
}

// Environment is what Docker's own programs read of the environment, and what they find the usual
// sockets by.
type Environment struct {
	Host       string // DOCKER_HOST: unix:///PATH or tcp://HOST:PORT
	TLSVerify  string // DOCKER_TLS_VERIFY: any value asks for TLS
	CertPath   string // DOCKER_CERT_PATH: directory with ca.pem, and cert.pem and key.pem of the client; asks for TLS
	RuntimeDir string // XDG_RUNTIME_DIR
	Home       string // HOME
	UID        int    // of this process
}

// EnvironmentOf reads it by a function like [os.Getenv].
func EnvironmentOf(getenv func(string) string, uid int) Environment {
	return Environment{
		Host: getenv("DOCKER_HOST"), TLSVerify: getenv("DOCKER_TLS_VERIFY"), CertPath: getenv("DOCKER_CERT_PATH"),
		RuntimeDir: getenv("XDG_RUNTIME_DIR"), Home: getenv("HOME"), UID: uid,
	}
}

// Check checks the host that the environment names, and the certificates for it.
func (e Environment) Check() error {
	_, err := e.parse()
	return err
}

// dockerTLSPort is that of an Engine over TLS, and dockerPort without.
const (
	dockerPort    = "2375"
	dockerTLSPort = "2376"
)

// parse returns the host that the environment names. TLS always checks who the Engine is: whoever
// answers there gets to run what it likes in the place of sandboxes.
func (e Environment) parse() (Host, error) {
	const field = "DOCKER_HOST"
	scheme, rest, ok := strings.Cut(e.Host, "://")
	if !ok || rest == "" {
		return Host{}, fault.InvalidField(field, "%q is no address", clip(e.Host)).WithRemedy("set it to unix:///PATH or tcp://HOST:PORT")
	}
	switch scheme {
	case "unix":
		if !filepath.IsAbs(rest) {
			return Host{}, fault.InvalidField(field, "%q is not an absolute path", clip(rest)).WithRemedy("set it to unix:///PATH")
		}
		return unixHost(rest), nil
	case "tcp", "http", "https":
	default:
		return Host{}, fault.InvalidField(field, "%q is neither unix nor tcp", clip(scheme)).
			WithRemedy("have the Engine listen on a unix socket or a TCP port, or forward one: ssh -L PATH:/run/docker.sock HOST")
	}
	u, err := url.Parse("tcp://" + rest)
	if err != nil || u.Hostname() == "" || u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "" {
		return Host{}, fault.InvalidField(field, "%q is not HOST:PORT", clip(rest)).WithRemedy("set it to tcp://HOST:PORT")
	}
	h := Host{network: "tcp", name: e.Host}
	port := dockerPort
	if scheme == "https" || e.TLSVerify != "" || e.CertPath != "" {
		if h.tls, err = e.config(u.Hostname()); err != nil {
			return Host{}, err
		}
		port = dockerTLSPort
	}
	port = cmp.Or(u.Port(), port)
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return Host{}, fault.InvalidField(field, "%q is not a port: 1 to 65535", clip(port))
	}
	h.address = net.JoinHostPort(u.Hostname(), port)
	return h, nil
}

func unixHost(path string) Host { return Host{network: "unix", address: path, name: "unix://" + path} }

// config reads the certificates.
func (e Environment) config(host string) (*tls.Config, error) {
	const field = "DOCKER_CERT_PATH"
	dir := cmp.Or(e.CertPath, filepath.Join(e.Home, ".docker"))
	pem, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return nil, fault.InvalidField(field, "%s has no ca.pem that can be read: %v", dir, err).
			WithRemedy("put the certificate of the Engine's authority there")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fault.InvalidField(field, "%s/ca.pem holds no certificate", dir)
	}
	c := &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12}
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	switch {
	case err == nil:
		c.Certificates = []tls.Certificate{own}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fault.InvalidField(field, "%s has no pair of cert.pem and key.pem that can be read: %v", dir, err)
	}
	return c, nil
}

// usual returns the sockets that Engines usually have, in the order in which they are asked: those
// of the user before those of the machine.
func (e Environment) usual() []Host {
	dir := cmp.Or(e.RuntimeDir, "/run/user/"+strconv.Itoa(e.UID))
	paths := []string{dir + "/podman/podman.sock", dir + "/docker.sock"}
	if filepath.IsAbs(e.Home) {
		paths = append(paths, e.Home+"/.docker/run/docker.sock")
	}
	var out []Host
	for _, p := range append(paths, "/run/podman/podman.sock", "/var/run/docker.sock", "/run/docker.sock") {
		if filepath.IsAbs(p) {
			out = append(out, unixHost(p))
		}
	}
	return out
}

// clip bounds what is quoted of what others wrote.
func clip(s string) string {
	const most = 300
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.TrimSpace(s)
}
