-- Services that are Helm charts need the feature helm; the feature kubernetes was none that a cluster could have.
update service set requires = array_replace(requires, 'kubernetes', 'helm') where 'kubernetes' = any (requires);
