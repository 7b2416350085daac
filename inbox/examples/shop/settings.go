package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"

	heads "github.com/headsapi/heads-go"
)

// settings are read once, so that whatever is missing is known at the start.
type settings struct {
	port          string
	database      string
	crmURL        heads.Secret // it may hold a key
	operatorToken heads.Secret
	attempts      int
}

func readSettings() (settings, error) {
	s := settings{
		port:          os.Getenv("PORT"),
		database:      os.Getenv("SHOP_DB"),
		crmURL:        heads.NewSecret(os.Getenv("SHOP_CRM_URL")),
		operatorToken: heads.NewSecret(os.Getenv("SHOP_OPERATOR_TOKEN")),
		attempts:      20,
	}
	var faults []error
	for _, name := range []string{"PORT", "SHOP_DB"} {
		if os.Getenv(name) == "" {
			faults = append(faults, fmt.Errorf("%s is not set", name))
		}
	}
	if u, err := url.Parse(s.crmURL.Reveal()); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		faults = append(faults, errors.New("SHOP_CRM_URL is not an http or https URL"))
	}
	if len(s.operatorToken.Reveal()) < 16 {
		faults = append(faults, errors.New("SHOP_OPERATOR_TOKEN is shorter than 16 characters"))
	}
	if text := os.Getenv("SHOP_ATTEMPTS"); text != "" {
		n, err := strconv.Atoi(text)
		if s.attempts = n; err != nil || n < 1 {
			faults = append(faults, fmt.Errorf("SHOP_ATTEMPTS is %q; give a number from 1", text))
		}
	}
	return s, errors.Join(faults...)
}
