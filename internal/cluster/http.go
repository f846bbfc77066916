// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"path/filepath"
)

// URL is that of a cluster's API server, in the cluster's network.
const URL = "https://" + Address + ":6443"

// Registry is where a registry of images may be that nodes speak to over http, beside those at addresses of the node's loopback.
const Registry = Address + ":5000"

// Administrator returns a client of the API server that is the administrator whose kubeconfig it is.
func Administrator(kubeconfig string) (*http.Client, error) {
	dir := filepath.Dir(kubeconfig)
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, "admin.crt"), filepath.Join(dir, "admin.key"))
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("the authority of the cluster is no certificate")
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}}}, nil
}
