// Package walkers tests that libraries which print or compare whatever memory holds, without
// calling methods, show no secret of package heads.
package walkers
