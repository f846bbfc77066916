// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validFor is how long what an authority signs is good: no test takes longer.
const validFor = 7 * 24 * time.Hour

// authority signs certificates, which it writes into a directory beside their keys.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority writes ca.crt and ca.key.
func newAuthority(dir string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a := &authority{dir: dir}
	a.cert = &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	var err error
	a.key, err = a.sign("ca", a.cert)
	return a, err
}

// lentTo returns the authority whose files are in a directory, which writes into another one from now on.
func lentTo(dir, from string) (*authority, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(from, "ca.crt"), filepath.Join(from, "ca.key"))
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("the authority's key is of another kind")
	}
	a := &authority{dir: dir, cert: pair.Leaf, key: key}
	return a, errors.Join(os.MkdirAll(dir, 0o700), a.write("ca.crt", "CERTIFICATE", pair.Leaf.Raw))
}

// sign writes name.crt and name.key.
func (a *authority) sign(name string, c *x509.Certificate) (*ecdsa.PrivateKey, error) {
	key, err := a.makeKey(name)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(math.MaxInt64))
	if err != nil {
		return nil, err
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = serial, time.Now().Add(-time.Hour), time.Now().Add(validFor)
	by := a.key
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, by)
	if err != nil {
		return nil, err
	}
	return key, a.write(name+".crt", "CERTIFICATE", der)
}

// makeKey writes name.key.
func (a *authority) makeKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, a.write(name+".key", "EC PRIVATE KEY", der)
}

func (a *authority) write(file, kind string, der []byte) error {
	return os.WriteFile(filepath.Join(a.dir, file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// client signs a certificate of a user of the API in a group, who serves at an address, too, unless that is "", and writes
// name.kubeconfig for it.
func (a *authority) client(name, user, group, serves string) error {
	c := &x509.Certificate{Subject: pkix.Name{CommonName: user}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if group != "" {
		c.Subject.Organization = []string{group}
	}
	if serves != "" {
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		c.IPAddresses = []net.IP{net.ParseIP(serves)}
	}
	if _, err := a.sign(name, c); err != nil {
		return err
	}
	b, err := json.MarshalIndent(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{map[string]any{"name": "test", "cluster": map[string]any{"server": URL, "certificate-authority": filepath.Join(a.dir, "ca.crt")}}},
		"users":    []any{map[string]any{"name": name, "user": map[string]any{"client-certificate": filepath.Join(a.dir, name+".crt"), "client-key": filepath.Join(a.dir, name+".key")}}},
		"contexts": []any{map[string]any{"name": "test", "context": map[string]any{"cluster": "test", "user": name}}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.dir, name+".kubeconfig"), b, 0o600)
}

// certify writes all that the components of a cluster are known by.
func certify(dir string) error {
	a, err := newAuthority(dir)
	if err != nil {
		return err
	}
	if _, err := a.sign("apiserver", &x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(Address), net.IPv4(10, 96, 0, 1)},
	}); err != nil {
		return err
	}
	if _, err := a.makeKey("sa"); err != nil {
		return err
	}
	const admins = "system:masters"
	for _, c := range []struct{ name, user, group string }{
		{"apiserver-kubelet-client", "kube-apiserver-kubelet-client", admins}, {"admin", "kubernetes-admin", admins},
		{"controllers", "system:kube-controller-manager", ""}, {"scheduler", "system:kube-scheduler", ""},
		{"proxy", "system:kube-proxy", ""},
	} {
		if err := a.client(c.name, c.user, c.group, ""); err != nil {
			return err
		}
	}
	return a.kubelet(Node, Address)
}

// kubelet writes what the kubelet of a node is known by.
func (a *authority) kubelet(node, address string) error {
	return a.client("kubelet", "system:node:"+node, "system:nodes", address)
}
