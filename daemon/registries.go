// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/image/oci"
)

// RegistryConfig is what the operator says of a registry. One that is not listed is spoken to without
// credentials, over https and at addresses of the public internet.
type RegistryConfig struct {
	Name    string   `yaml:"name"`       // its host, with its port where references have one
	Mirrors []string `yaml:"mirrors"`    // hosts that are asked before it
	Private bool     `yaml:"private"`    // it may have a private address
	Plain   bool     `yaml:"plain_http"` // it is spoken to over http
	// Projects lets tokens of projects use what is said here: mirrors, credentials, a private address, http.
	Projects bool `yaml:"projects"`
	// Username goes with the password in a variable of the server's environment, or in a file.
	Username     string `yaml:"username"`
	PasswordEnv  string `yaml:"password_env"`
	PasswordFile string `yaml:"password_file"`
	// DockerConfig is a file of Docker's, as its login writes one, with the registry's credentials in it.
	DockerConfig string `yaml:"docker_config"`
}

// maxRegistryCredentials bounds a file of credentials.
const maxRegistryCredentials = 1 << 20

// registriesOf reads the credentials of registries.
func registriesOf(list []RegistryConfig, getenv func(string) string) ([]oci.Registry, error) {
	var all []oci.Registry
	for _, c := range list {
		for _, host := range append([]string{c.Name}, c.Mirrors...) {
			if r, err := oci.ParseReference(host + "/x"); err != nil || r.Registry != strings.ToLower(host) {
				return nil, fault.InvalidField("images.registries", "%q is not the host of a registry, with or without a port", host)
			}
		}
		r := oci.Registry{Name: c.Name, Mirrors: c.Mirrors, Private: c.Private, Plain: c.Plain, Projects: c.Projects, Username: c.Username}
		var err error
		switch {
		case c.PasswordEnv != "" && c.PasswordFile != "" || c.DockerConfig != "" && (c.Username != "" || c.PasswordEnv != "" || c.PasswordFile != ""):
			return nil, fault.InvalidField("images.registries", "%s has its credentials in two places", c.Name).
				WithRemedy("use one of: username with password_env, username with password_file, docker_config")
		case c.PasswordEnv != "":
			if r.Password = getenv(c.PasswordEnv); r.Password == "" {
				return nil, fault.InvalidField("images.registries", "the variable %s with the password for %s is not set", c.PasswordEnv, c.Name)
			}
		case c.PasswordFile != "":
			var data []byte
			if data, err = readCredentials(c.PasswordFile); err == nil {
				r.Password = strings.TrimRight(string(data), "\r\n")
			}
		case c.DockerConfig != "":
			r.Username, r.Password, err = fromDocker(c.DockerConfig, c.Name)
		}
		if err != nil {
			return nil, err
		}
		if (r.Username == "") != (r.Password == "") {
			return nil, fault.InvalidField("images.registries", "%s has a user or a password, but not both", c.Name)
		}
		if r.Plain && r.Password != "" && !r.Private {
			return nil, fault.InvalidField("images.registries", "%s would get its password over http, through the public internet", c.Name).
				WithRemedy("leave out plain_http, or set private where it is of your own network")
		}
		all = append(all, r)
	}
	return all, nil
}

func readCredentials(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the credentials of a registry in %s cannot be read", path)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRegistryCredentials))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the credentials of a registry in %s cannot be read", path)
	}
	return data, nil
}

// fromDocker returns the credentials that Docker's login wrote for a registry.
func fromDocker(path, name string) (user, password string, err error) {
	data, err := readCredentials(path)
	if err != nil {
		return "", "", err
	}
	var file struct {
		Auths map[string]struct {
			Auth string `json:"auth"`
		} `json:"auths"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return "", "", fault.InvalidField("images.registries", "%s is not a configuration of Docker's: %v", path, err)
	}
	names := []string{name, "https://" + name, "https://" + name + "/v2/"}
	if name == "docker.io" {
		names = append(names, "https://index.docker.io/v1/", "index.docker.io")
	}
	for _, n := range names {
		entry, ok := file.Auths[n]
		if !ok {
			continue
		}
		text, err := base64.StdEncoding.DecodeString(entry.Auth)
		user, password, ok := strings.Cut(string(text), ":")
		if err == nil && ok {
			return user, password, nil
		}
	}
	return "", "", fault.InvalidField("images.registries", "%s has no credentials for %s", path, name).
		WithRemedy("run docker login %s as the server's user; credentials that a helper of Docker's keeps are not read: use password_file", name)
}

// rootsOf are the host's authorities and more, in PEM.
func rootsOf(more []byte) *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM(more)
	return pool
}
