# The arguments are JSON in SKILLZ_ARGUMENTS; whatever is printed is the result.
use strict;
use warnings;
use JSON::PP;

my $arguments = decode_json($ENV{SKILLZ_ARGUMENTS});
my @words = split ' ', $arguments->{text};
print encode_json({ words => scalar @words }), "\n";
