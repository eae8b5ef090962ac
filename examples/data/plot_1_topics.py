"""
Topics of texts, with their words
=================================

A text is a sum of topics, and a topic is a list of words. The factorisation of a tf-idf matrix finds both.
"""

# %%
# 1200 short texts from a small grammar. Each speaks about one or two of six topics; some words belong to
# several ("bank", "cell", "season").
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from lognmf import LogSparseNMF, metrics, plots

TOPICS = {
    "money": "bank market price share tax interest budget growth trade company investor fund currency debt",
    "river": "bank water river boat fish flood rain bridge lake shore stream valley ice spring season",
    "sport": "match goal team season player league score win cup referee stadium final champion defence",
    "biology": "cell gene protein tissue enzyme membrane species blood spring organ growth virus nerve dna",
    "phones": "phone screen battery cell network app camera market software chip user message price company",
    "kitchen": "fish sauce onion oil bread oven salt pepper butter garlic cook dish rice season spring",
}
FILLER = "the a this that is was has many new one more about with from also said year day people time"
rng = np.random.default_rng(0)


def write(topics):
    """A text of thirty to sixty words."""
    words = [rng.choice(TOPICS[rng.choice(topics)].split()) for _ in range(rng.integers(15, 30))]
    return " ".join(rng.permutation(words + list(rng.choice(FILLER.split(), len(words)))))


about = [rng.choice(list(TOPICS), size=rng.choice([1, 2], p=[0.7, 0.3]), replace=False) for _ in range(1200)]
texts = [write(topics) for topics in about]
print(texts[0])

# %%
# tf-idf gives rare words more weight and every text unit norm. The matrix is sparse, and stays sparse.
vectorizer = TfidfVectorizer(stop_words=FILLER.split())
X = vectorizer.fit_transform(texts)
words = vectorizer.get_feature_names_out()
model = LogSparseNMF(6, random_state=0).fit(X)
print(f"{X.shape[0]} texts, {X.shape[1]} words, zeros in the topics: {np.mean(model.components_ == 0):.0%}")

# %%
# Words with several meanings: "bank" belongs to money and to rivers, "spring" to rivers, biology and
# kitchens. Without a weight for sparsity they are in all their topics. Sparse topics keep such a word where
# it explains most: easier to read, but with fewer meanings per word.
plain = LogSparseNMF(6, alpha=0, beta=0, random_state=0).fit(X)
for name, fit in {"alpha = 0": plain, "auto": model}.items():
    for word in ("bank", "spring"):
        weights = fit.components_[:, list(words).index(word)] / fit.components_.max(axis=1)
        topics = [
            f"{words[part.argmax()]} {weight:.2f}"
            for part, weight in zip(fit.components_, weights, strict=True)
            if weight > 0.05
        ]
        print(f"{name:9s} {word}: {', '.join(topics)}")

# %%
# The largest code of a text tells its main topic. How many of the texts on a single topic are put together
# rightly?
single = np.array([len(topics) == 1 for topics in about])
truth = [topics[0] for topics in about if len(topics) == 1]
accuracy = metrics.clustering_accuracy(truth, model.embedding_[single].argmax(axis=1))
print(f"{accuracy:.1%} of {single.sum()} texts")

# %%
# A new text is coded by the same topics.
new = vectorizer.transform(["the boat on the lake", "a goal in the final", "bread with butter from the oven"])
for text, code in zip(("boat", "goal", "bread"), model.transform(new), strict=True):
    top = model.components_[code.argmax()].argsort()[::-1][:3]
    print(f"{text}: topic of {', '.join(words[top])}")

# %%
# The six topics by their largest words.
plots.parts(model, feature_names=words)
