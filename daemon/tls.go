// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/tls"
	"log/slog"
	"net"
	"slices"

	"sandpit.dev/fault"
	"sandpit.dev/internal/certfile"
	"sandpit.dev/network/preview"
	"sandpit.dev/sandbox"
)

// TLSConfig has the server listen with TLS, beside the address without.
type TLSConfig struct {
	// Cert and Key are files in PEM: the certificate, then those between it and its authority; its key. They are
	// read again when they change. Empty: no TLS.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// Listen is host:port; "": port 8443 of the host of the address without.
	Listen string `yaml:"listen"`
}

// tlsPort is that of the address with TLS where none is configured.
const tlsPort = "8443"

// on reports whether there is TLS.
func (c *TLSConfig) on() bool { return c.Cert != "" }

// check checks c, and completes it. plain is the address without TLS.
func (c *TLSConfig) check(plain string) error {
	switch {
	case c.Cert == "" && c.Key == "" && c.Listen == "":
		return nil
	case c.Cert == "":
		return fault.InvalidField("tls.cert", "is missing").WithRemedy("name the file of the certificate; sandpit tls init DOMAIN makes one")
	case c.Key == "":
		return fault.InvalidField("tls.key", "is missing").WithRemedy("name the file of the certificate's key")
	case c.Listen == "":
		c.Listen = net.JoinHostPort(hostOf(plain), tlsPort)
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fault.InvalidField("tls.listen", "%q is not host:port", sandbox.Clip(c.Listen, 80)).WithRemedy("write it as 0.0.0.0:8443")
	}
	if c.Listen == plain && hasPort(plain) {
		return fault.InvalidField("tls.listen", "%q is the address without TLS, listen, too", c.Listen).WithRemedy("choose another port for one of them")
	}
	return nil
}

// hasPort reports whether an address names its port: with port 0 the kernel chooses one.
func hasPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port != "0"
}

// open listens, and returns how connections are answered; nil without TLS.
func (c *TLSConfig) open(log *slog.Logger) (net.Listener, *tls.Config, error) {
	if !c.on() {
		return nil, nil, nil
	}
	pair, err := certfile.Open(c.Cert, c.Key, log)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Unavailable, err, "cannot listen on %s", c.Listen).
			WithRemedy("choose another address by tls.listen")
	}
	return l, &tls.Config{GetCertificate: pair.GetCertificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}, nil
}

// apiName is the name of the API below the server's domain, as clients write it that derive one from the other.
const apiName = "api."

// checkDomain checks the server's domain, and completes what follows from it.
func (c *Config) checkDomain() error {
	if c.Domain == "" {
		return nil
	}
	if err := preview.CheckDomain("domain", c.Domain); err != nil {
		return err
	}
	if c.Preview.Domain == localDomain {
		c.Preview.Domain = c.Domain
	}
	for _, name := range []string{c.Domain, apiName + c.Domain} {
		if !slices.Contains(c.Hosts, name) {
			c.Hosts = append(slices.Clip(c.Hosts), name)
		}
	}
	return nil
}

// names are the hosts that requests may be addressed to.
func (c *Config) names() []string {
	all := append(slices.Clip(c.Hosts), hostOf(c.Listen))
	if c.TLS.on() {
		all = append(all, hostOf(c.TLS.Listen))
	}
	return all
}
