// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Config is what a client may read of a server.
type Config struct {
	Version                string   `json:"version"`
	OIDC                   OIDC     `json:"oidc"`
	LinkedAccountsEnabled  bool     `json:"linkedAccountsEnabled"`
	Announcements          struct{} `json:"announcements"`
	ProxyTemplateURL       string   `json:"proxyTemplateUrl"`
	ProxyToolboxURL        string   `json:"proxyToolboxUrl"`
	DefaultSnapshot        string   `json:"defaultSnapshot"`
	DashboardURL           string   `json:"dashboardUrl"`
	MaxAutoArchiveInterval int      `json:"maxAutoArchiveInterval"` // minutes
	MaintenanceMode        bool     `json:"maintananceMode"`        // as it is spelt there
	Environment            string   `json:"environment"`
}

// OIDC is how people sign in elsewhere; here they do not.
type OIDC struct {
	Provider string `json:"provider"`
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientId"`
	Audience string `json:"audience"`
}
